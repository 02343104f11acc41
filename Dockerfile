FROM python:3.13-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 DJANGO_SETTINGS_MODULE=config.settings
WORKDIR /app

COPY requirements/base.txt requirements/base.txt
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements/base.txt

COPY manage.py ./
COPY config config
COPY journal journal
COPY approvals approvals
COPY agents agents
COPY templates templates
COPY static static

# Static files get names with their content's hash. The keys below serve this one command only.
RUN SIGNOFF_ENV=production SIGNOFF_BASE_URL=https://build.invalid \
    SIGNOFF_SECRET_KEY=used-while-building-the-image-and-never-again-0123456789 \
    SIGNOFF_CHAIN_KEY=used-while-building-the-image-and-never-again-9876543210 \
    python manage.py collectstatic --no-input

RUN useradd --system --home-dir /app --shell /usr/sbin/nologin signoff
USER signoff
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "config.wsgi", "--config", "python:config.gunicorn", "--bind", "0.0.0.0:8000"]
