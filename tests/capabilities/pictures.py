"""A picture of each kind, made by a browser: three pixels wide and two high, the GIF one by one."""

from __future__ import annotations

from base64 import b64decode

PICTURES = {
    "png": b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAAEklEQVR4AWL6z8DwH4aZGJAAAAAA//+GpNPhAAAABklEQVQDAHTz"
        "Bf+1yIrkAAAAAElFTkSuQmCC"
    ),
    "jpg": b64decode(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////"
        "////////////////////2wBDAVVaWnhpeOuCguv/////////////////////////////////////////////////////////////"
        "////////////wAARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QA"
        "FQEBAQAAAAAAAAAAAAAAAAAAAwT/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCQA1j/2Q=="
    ),
    "gif": b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
    "webp": b64decode("UklGRjQAAABXRUJQVlA4ICgAAACQAQCdASoDAAIAB0CWJaACdLoAA5gA/uUK+Cepco/+N48CvJdjoAAA"),
    "webp lossless": b64decode("UklGRiIAAABXRUJQVlA4TBUAAAAvAkAAEA8Q8x8DGAyFAAKgoInofzwA"),
    "webp extended": b64decode(
        "UklGRlQAAABXRUJQVlA4WAoAAAAQAAAAAgAAAQAAQUxQSAcAAAAAgIAAgIAAAFZQOCAmAAAAcAEAnQEqAwACAAdAliWoAnQBQAAA"
        "/uUJ5iOoEZl/e00k3CuAAAA="
    ),
}
