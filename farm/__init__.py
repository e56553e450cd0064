"""The coordinator: lends tabs to work and can prove afterwards what happened."""
