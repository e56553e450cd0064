"""What the manager and the jobs need from a store. Every method takes `now`: stores read no clock.

Each Protocol has one conformance suite under tests/stores/, which runs unchanged on every
implementation. A method raises `StoreUnavailableError` when the store can't be read; it never
answers with an empty result instead.
"""
