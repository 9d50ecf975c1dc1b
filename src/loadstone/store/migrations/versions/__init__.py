"""One file per revision, in the order of loadstone.store.schema.REVISIONS."""
