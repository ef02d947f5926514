"""What callers ask about feedback and hand in: a file for each noun."""

from threadline.kernel.operation import Group

FEEDBACK_GROUP = Group("feedback", "What became of mails: deliveries, opens, clicks, bounces, complaints, replies.")
