"""The wire: agent messages, job plans and HTTP bodies. The only room the agent may enter.

Messages are added and never changed; unknown fields of a message are ignored, so that an older
peer survives a newer one. Steps are the exception: a key that is not understood would change what
a step does, so an unknown one is refused.
"""
