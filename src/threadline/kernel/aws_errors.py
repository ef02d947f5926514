"""What an error of an AWS service means for an operator: which permission, name or credential is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, ThreadlineError, Unavailable

_DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "Forbidden",
        "403",
        "KMS.AccessDeniedException",
        "KMSAccessDenied",
        "KMSAccessDeniedException",
        "UnauthorizedOperation",
    }
)
_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSecurity",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_MISSING = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "NotFound",
        "NotFoundException",
        "NoSuchBucket",
        "NoSuchKey",
        "ResourceNotFoundException",
        "404",
    }
)
_NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError", "NoRegionError", "ProfileNotFound"})


def error_code(error: Exception) -> str:
    """The service's own code of an error of botocore; empty where it did not come as far as the service."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, Mapping) else ""


def explained(error: Exception, service: str, resource: str) -> ThreadlineError:
    """An error of botocore as one that says what to do. ``service`` is its prefix in permissions, such as ``sqs``."""
    code, operation = error_code(error), str(getattr(error, "operation_name", "") or "")
    permission = f"{service}:{operation}"
    if code in _DENIED:
        hint = f"Allow {permission} on it to the role of this process" + (
            ", and its KMS key." if "KMS" in code else "."
        )
        return Forbidden(f"{resource}: {permission} is not permitted ({_text(error)})", hint=hint)
    if code in _CREDENTIALS or type(error).__name__ in _NO_CREDENTIALS:
        hint = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and AWS_DEFAULT_REGION, or give the process a role."
        return InvalidSetting(f"{resource}: AWS does not take the credentials ({_text(error)})", hint=hint)
    if code in _MISSING:
        return NotFound(f"{resource} does not exist ({code} for {permission})", hint="Create it, or correct its name.")
    return Unavailable(f"{resource}: {permission if operation else service} failed: {_text(error)}")


def _text(error: Exception) -> Any:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        details = response.get("Error", {})
        return f"{details.get('Code', '')}: {details.get('Message', '')}"[:300]
    return f"{type(error).__name__}: {error}"[:300]
