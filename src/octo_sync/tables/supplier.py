"""The supplier behind the token. From `GET /supplier`."""

from octo_sync.octo.records import Supplier
from octo_sync.tables.base import CONNECTION_ID, column
from octo_sync.tables.reading import struct
from octo_sync.tables.schema import Noun, Table

NOUN = Noun(name="supplier", record=struct(Supplier))

SUPPLIERS = Table(
    full_name="core.suppliers",
    description="The company whose products a connection sells. Its contact data is a company's, not a person's.",
    grain="One supplier of one connection.",
    noun="supplier",
    source="staged_supplier r",
    key=("connection_id", "supplier_id"),
    scope=("connection_id",),
    columns=(
        CONNECTION_ID,
        column("supplier_id", "text", "r.id", "OCTO supplier id."),
        column("name", "text", "r.name", "Name."),
        column("endpoint", "text", "r.endpoint", "Base URL the supplier states."),
        column("website", "text", "r.contact.website", "Web site."),
        column("email", "text", "r.contact.email", "Public e-mail address."),
        column("telephone", "text", "r.contact.telephone", "Public telephone number."),
        column("address", "text", "r.contact.address", "Postal address."),
    ),
)
