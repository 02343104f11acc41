from celery import shared_task

from journal import bells, celery_signals, worker


@shared_task(name=bells.BELL, ignore_result=True, acks_late=False)
def bell() -> None:
    """There is work: claim it, and go on until there is none."""
    worker.current().drain()


__all__ = ["bell", "celery_signals"]
