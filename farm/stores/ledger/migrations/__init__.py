"""The history of the schema, one revision a change.

To change it: edit `schema.py`, add the next `versions/vNNNN_what.py` (`down_revision` names the
last one), raise `HEAD` in `farm/stores/ledger/migrate.py`. `tests/stores/test_migrations.py`
fails while the three differ.
"""
