"""Where the world reaches this server: the beginning of every link that leaves it."""

from __future__ import annotations

from urllib.parse import urlsplit

from threadline.kernel.errors import InvalidSetting

_EXAMPLE = "such as https://mail.example.com"


class PublicAddress:
    """The setting `public_url`, or the address of a server that only this machine can reach."""

    def __init__(self, public_url: str) -> None:
        self.base = public_url.rstrip("/")
        """Empty: unknown."""
        self.is_local = not public_url
        """Whether nobody has set it."""
        if public_url:
            _refuse_unusable(public_url)

    def use_local(self, address: str) -> None:
        """Use a development server's own address where nobody has set another."""
        if self.is_local:
            self.base = address

    def url(self, path: str) -> str:
        """The link to a path that begins with a slash. Raises `InvalidSetting` where the address is unknown."""
        if not self.base:
            raise InvalidSetting(
                "public_url: links in mails need the address at which the world reaches this server",
                hint=f"Set THREADLINE_PUBLIC_URL or settings.public_url, {_EXAMPLE}.",
            )
        return self.base + path


def _refuse_unusable(public_url: str) -> None:
    try:
        parts = urlsplit(public_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or public_url != public_url.strip() or parts.query or parts.fragment or parts.username is not None:
        raise InvalidSetting(f"public_url: give an http or https address without login, query and fragment, {_EXAMPLE}")
