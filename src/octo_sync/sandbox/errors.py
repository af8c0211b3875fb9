"""The errors of the API: the brief's four in its spelling, the specification's others."""

import msgspec


class OctoError(Exception):
    """A refused request. `context` holds the offending id under the key the specification names."""

    def __init__(self, status: int, code: str, message: str, **context: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.context = context

    def body(self) -> bytes:
        """The JSON object."""
        return msgspec.json.encode({"error": self.code, "errorMessage": self.message, **self.context})


def unauthorized() -> OctoError:
    """Token missing or invalid."""
    return OctoError(401, "Unauthorized", "The API token is missing or invalid.")


def forbidden(ability: str) -> OctoError:
    """The token lacks an ability."""
    return OctoError(403, "FORBIDDEN", f"The API token lacks the ability '{ability}'.")


def bad_request(message: str) -> OctoError:
    """Malformed, or something is missing."""
    return OctoError(400, "BAD_REQUEST", message)


def unprocessable(message: str) -> OctoError:
    """Valid, but cannot be done."""
    return OctoError(400, "UNPROCESSABLE_ENTITY", message)


def not_found(what: str) -> OctoError:
    """No such path or subscription."""
    return OctoError(404, "NOT_FOUND", f"{what} was not found.")


def invalid(key: str, value: object) -> OctoError:
    """An id (`productId`, `optionId`, `unitId`, `availabilityId`) is invalid or not found."""
    code = f"INVALID_{key.removesuffix('Id').upper()}_ID"
    return OctoError(400, code, f"The {key} was missing or invalid", **{key: _text(value)})


def invalid_booking(uuid: object) -> OctoError:
    """The booking uuid is invalid or not found."""
    return OctoError(400, "INVALID_BOOKING_UUID", "The uuid was already used, missing or invalid", uuid=_text(uuid))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
