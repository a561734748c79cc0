"""Alembic's entry: runs migrations on the connection that the caller hands in, inside the caller's transaction."""

from alembic import context

from claudomator_py.store.migrate import is_described

attributes = context.config.attributes

context.configure(
    connection=attributes["connection"],
    target_metadata=attributes.get("metadata"),
    include_name=is_described,
    render_item=attributes.get("render_item"),
    render_as_batch=attributes.get("render_as_batch", False),
)
context.run_migrations()
