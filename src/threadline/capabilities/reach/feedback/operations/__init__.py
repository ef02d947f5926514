"""What callers ask about feedback and hand in: a file for each noun."""

from threadline.kernel.operation import Group

FEEDBACK_GROUP = Group("feedback", "Results of mail: opens, clicks, bounces, replies.")
