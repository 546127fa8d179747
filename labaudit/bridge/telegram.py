"""The Telegram side of the chat bridge: updates in, messages, edits and buttons out, by python-telegram-bot.

The token comes from the environment. It is kept out of the agent's environment, out of every record, and every log line
passes through a filter that withholds it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import PurePosixPath
from typing import Any, TypeVar

from labaudit.bridge.chat import ChatBridge
from labaudit.bridge.turn_view import Buttons, Undelivered
from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput, EnvironmentLacks
from labaudit.harnesses.acp.wire.dialect import MAX_IMAGE_BYTES

TOKEN_VARIABLE = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable, no secret
PUBLIC_API = "https://api.telegram.org"
TRIES = 4
LONGEST_WAIT_S = 60.0
CALL_TIMEOUT_S = 120.0
MAX_LABEL = 60
_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
Result = TypeVar("Result")


def need_library() -> Any:
    """python-telegram-bot, or EnvironmentLacks saying how to get it."""
    try:
        import telegram.ext
    except ImportError as error:
        raise EnvironmentLacks(
            "python-telegram-bot is not installed", hint="install the extra: pip install 'labaudit[telegram]'"
        ) from error
    return telegram


class TelegramPort:
    """Messages out. Called from the bridge's threads, it hands the work to the bot's event loop."""

    def __init__(self, bot: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._bot = bot
        self._loop = loop

    def send(self, chat_id: int, text: str, buttons: Buttons = ()) -> int:
        """Plain text: nothing that an agent says is read as markup."""
        message = self._call(lambda: self._bot.send_message(chat_id, text, reply_markup=_keyboard(buttons)))
        return int(message.message_id) if message is not None else 0

    def edit(self, chat_id: int, message_id: int, text: str, buttons: Buttons = ()) -> None:
        """An edit that changes nothing is no error."""
        self._call(
            lambda: self._bot.edit_message_text(
                text, chat_id=chat_id, message_id=message_id, reply_markup=_keyboard(buttons)
            )
        )

    def typing(self, chat_id: int) -> None:
        """Lasts about five seconds on the other side."""
        self._call(lambda: self._bot.send_chat_action(chat_id, "typing"))

    def _call(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        try:
            future = asyncio.run_coroutine_threadsafe(patiently(make), self._loop)
        except RuntimeError as error:
            raise Undelivered("the bot is shutting down") from error
        try:
            return future.result(CALL_TIMEOUT_S)
        except FutureTimeout as error:
            future.cancel()
            raise Undelivered("Telegram did not answer in time") from error


async def patiently(make: Callable[[], Awaitable[Result]]) -> Result | None:
    """The call's result; waits as Telegram asks, tries again when the network fails, then Undelivered."""
    from telegram.error import BadRequest, NetworkError, RetryAfter, TelegramError

    last = ""
    for attempt in range(TRIES):
        try:
            return await make()
        except RetryAfter as error:
            wait = error.retry_after
            last, pause = "rate limit", float(wait.total_seconds() if hasattr(wait, "total_seconds") else wait)
        except BadRequest as error:
            if "not modified" in str(error).lower():
                return None
            raise Undelivered(f"Telegram refused a message: {error}") from None
        except NetworkError:
            last, pause = "network", 0.5 * 2**attempt
        except TelegramError as error:
            raise Undelivered(f"Telegram refused a message: {type(error).__name__}") from None
        await asyncio.sleep(min(pause, LONGEST_WAIT_S))
    raise Undelivered(f"Telegram did not take a message ({last})")


def _keyboard(buttons: Buttons) -> Any:
    if not buttons:
        return None
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup

    rows = [[InlineKeyboardButton(label[:MAX_LABEL], callback_data=data)] for label, data in buttons]
    return InlineKeyboardMarkup(rows)


class TelegramBot:
    """Polls for updates and hands them to a bridge until it is told to stop."""

    def __init__(self, token: str, *, api_url: str = PUBLIC_API, log: Callable[[str], None]) -> None:
        library = need_library()
        self._log = log
        if not token or any(character.isspace() for character in token):
            raise BadInput("the bot token is empty or not one word", where=TOKEN_VARIABLE)
        if api_url != PUBLIC_API and not api_url.startswith(("http://127.0.0.1", "http://localhost", "https://")):
            raise BadInput("would carry the token over an open line", where="--api-url", hint="use https, or loopback")
        base = api_url.rstrip("/")
        builder = library.ext.Application.builder().token(token)
        builder = builder.base_url(f"{base}/bot").base_file_url(f"{base}/file/bot")
        self._application = builder.concurrent_updates(True).build()
        self._bridge: ChatBridge | None = None

    def run(self, make_bridge: Callable[[TelegramPort], ChatBridge]) -> None:
        """Blocks until SIGINT or SIGTERM; then every agent is ended and every record sealed."""
        asyncio.run(self._run(make_bridge))

    async def _run(self, make_bridge: Callable[[TelegramPort], ChatBridge]) -> None:
        from telegram.error import InvalidToken, NetworkError
        from telegram.ext import CallbackQueryHandler, MessageHandler, filters

        application, loop = self._application, asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        application.add_handler(CallbackQueryHandler(self._button))
        application.add_handler(MessageHandler(filters.ALL, self._message))
        application.add_error_handler(self._error)
        try:
            await application.initialize()
        except InvalidToken:
            raise BadInput("Telegram does not know this bot token", where=TOKEN_VARIABLE) from None
        except NetworkError as error:
            hint = "check the network, and --api-url if it is given"
            raise EnvironmentLacks(f"Telegram cannot be reached: {type(error).__name__}", hint=hint) from None
        self._bridge = make_bridge(TelegramPort(application.bot, loop))
        try:
            await application.start()
            await application.updater.start_polling(allowed_updates=["message", "callback_query"])
            self._log("the bridge is up; Ctrl-C ends it")
            await stop.wait()
            await application.updater.stop()
        finally:
            # The bridge says its last words through the bot, so it goes first, off the loop.
            await asyncio.to_thread(self._bridge.close)
            if application.running:
                await application.stop()
            await application.shutdown()

    async def _message(self, update: Any, _: Any) -> None:
        message, bridge = update.effective_message, self._bridge
        if message is None or bridge is None or update.effective_chat is None:
            return
        chat_id = int(update.effective_chat.id)
        if message.photo or (message.document and str(message.document.mime_type or "").startswith("image/")):
            # A stranger's file is not even fetched: to the bridge it is a text without words.
            if bridge.is_allowed(chat_id):
                await self._image(chat_id, message)
            else:
                await asyncio.to_thread(bridge.on_text, chat_id, "")
        elif message.text:
            await asyncio.to_thread(bridge.on_text, chat_id, message.text)

    async def _image(self, chat_id: int, message: Any) -> None:
        bridge = self._bridge
        source = message.photo[-1] if message.photo else message.document
        if bridge is None:
            return
        if (source.file_size or 0) > MAX_IMAGE_BYTES:
            await asyncio.to_thread(bridge.tell, chat_id, "This image is too large.")
            return
        file = await source.get_file()
        data = bytes(await file.download_as_bytearray())
        suffix = PurePosixPath(file.file_path or "").suffix.lower()
        if suffix not in _SUFFIXES or len(data) > MAX_IMAGE_BYTES:
            await asyncio.to_thread(bridge.tell, chat_id, "This is no image that can be passed on.")
            return
        await asyncio.to_thread(bridge.on_image, chat_id, data, suffix, message.caption or "")

    async def _button(self, update: Any, _: Any) -> None:
        query, bridge = update.callback_query, self._bridge
        if query is None or bridge is None or update.effective_chat is None:
            return
        text = await asyncio.to_thread(bridge.on_button, int(update.effective_chat.id), str(query.data or ""))
        await patiently(lambda: query.answer(text[:180]))

    async def _error(self, _: Any, context: Any) -> None:
        self._log(f"telegram: {type(context.error).__name__}")


class _Withholding(logging.Filter):
    """Takes secrets out of log lines, wherever in the line they stand."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redactor.text(record.getMessage()), ()
        if record.exc_info:
            # A traceback may quote an address, and Telegram's addresses hold the token.
            kind = record.exc_info[0]
            record.msg += f" ({kind.__name__ if kind else 'error'})"
            record.exc_info, record.exc_text = None, None
        return True


def quiet_logging(redactor: Redactor) -> None:
    """Warnings of the libraries to stderr, without secrets; requests, whose addresses hold the token, not at all."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Withholding(redactor))
    handler.setLevel(logging.WARNING)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.ERROR)
