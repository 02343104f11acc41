"""Django settings, all from the environment: docs/settings.md has the table.

SIGNOFF_ENV chooses the mode. `production` is the default of the servers, so that a forgotten
variable fails loudly instead of running with keys made up on the spot; `manage.py` and what it
starts default to `development`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config import database, env
from config.broker import celery_settings
from config.home import BASE_DIR, generated_secret, home
from config.logs import logging_settings

ENVIRONMENT = env.choice("SIGNOFF_ENV", "production", ("development", "production", "test"))
PRODUCTION = ENVIRONMENT == "production"
SIGNOFF_HOME: Path = home()


def _key(name: str, file_name: str) -> str:
    value = env.secret(name)
    if not value and PRODUCTION:
        raise ImproperlyConfigured(f"{name} is not set; production needs it (SIGNOFF_ENV is {ENVIRONMENT})")
    return value or generated_secret(SIGNOFF_HOME, file_name)


# -- Signoff -----------------------------------------------------------------------------------

SIGNOFF_WORKFLOWS = env.names("SIGNOFF_WORKFLOWS", "agents.examples.returns")
SIGNOFF_POLICIES: Path = env.folder("SIGNOFF_POLICIES") or BASE_DIR / "agents/examples/policies.toml"
SIGNOFF_CHAIN_KEY = _key("SIGNOFF_CHAIN_KEY", "chain_key")
SIGNOFF_BASE_URL = env.text("SIGNOFF_BASE_URL", "" if PRODUCTION else "http://127.0.0.1:8000").rstrip("/")
SIGNOFF_COMMAND_DECISIONS = env.flag("SIGNOFF_COMMAND_DECISIONS", default=False)
SIGNOFF_REPLAY_EVERY_STEP = env.flag("SIGNOFF_REPLAY_EVERY_STEP", default=False)
SIGNOFF_MODEL_CLIENT = env.text("SIGNOFF_MODEL_CLIENT", "scripted")
SIGNOFF_TEST_DATA = env.folder("SIGNOFF_TEST_DATA")

# -- Django ------------------------------------------------------------------------------------

SECRET_KEY = _key("SIGNOFF_SECRET_KEY", "secret_key")
# Never on: its error pages show local variables, which here are other people's data.
DEBUG = False
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "journal",
    "approvals",
    "agents",
    "config",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.security_headers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# -- database and broker -----------------------------------------------------------------------

DATABASE_POOL = env.count("SIGNOFF_DATABASE_POOL", database.default_pool_size)
PREPARED_STATEMENTS = env.flag("SIGNOFF_PREPARED_STATEMENTS", default=True)
DATABASE_ADDRESS = database.address()
DATABASES: dict[str, Any] = {
    "default": database.django_database(DATABASE_ADDRESS, pool_size=DATABASE_POOL),
}
# Settings of the Celery app (config.celery), under Celery's own names.
CELERY = celery_settings(env.secret("SIGNOFF_BROKER_URL"), database.conninfo(DATABASE_ADDRESS))
database.tell_libpq(DATABASE_ADDRESS)

# -- people ------------------------------------------------------------------------------------

# Django's own, less the demo accounts when the request comes from another machine.
AUTHENTICATION_BACKENDS = ["approvals.demo_accounts.SignInBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "approvals.sign_in.csrf_failure"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
if ENVIRONMENT == "test":
    # Signing in hundreds of times is not what the tests are about.
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# -- addresses and headers ---------------------------------------------------------------------

_SITE = urlsplit(SIGNOFF_BASE_URL)
SECURE = _SITE.scheme == "https"
ALLOWED_HOSTS = [_SITE.hostname] if _SITE.hostname else []
if not PRODUCTION:
    ALLOWED_HOSTS += ["127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = [SIGNOFF_BASE_URL] if SIGNOFF_BASE_URL else []
SECURE_SSL_REDIRECT = SECURE
SESSION_COOKIE_SECURE = SECURE
CSRF_COOKIE_SECURE = SECURE
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE
SECURE_HSTS_PRELOAD = SECURE
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# -- texts, times, files -----------------------------------------------------------------------

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = env.folder("SIGNOFF_STATIC_ROOT") or BASE_DIR / "staticfiles"
# Production serves what `collectstatic` made, under names that carry the content's hash;
# elsewhere files are found where they are written.
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = not PRODUCTION
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
    },
}

LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_settings()
