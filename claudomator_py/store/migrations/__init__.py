"""The history of the schema, run by ``store.migrate``. Forward only: the way back is the backup made before."""
