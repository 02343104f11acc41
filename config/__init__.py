"""The composition root: settings, the Celery app, URLs, the embedded database and `up`."""
