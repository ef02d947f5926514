"""Operations on broadcasts: creating, previewing, steering and reading them."""

from threadline.kernel.operation import Group

BROADCASTS_GROUP = Group("broadcasts", "One mail to everybody of an audience, once.")
