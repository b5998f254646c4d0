"""Short texts in nine languages, a space of each, and the table of docs/languages.md: ``python -m tests.spoken``."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import corpusveil as cv
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.text import languages
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokenizer

PAGE = Path(__file__).parents[1] / "docs" / "languages.md"
BEGIN, END = "<!-- python -m tests.spoken -->\n", "<!-- end -->\n"
EPSILON = 1.5
KEY = cv.Key(bytes(range(32)))

TEXTS = {
    "de": """
Der Drucker im Büro druckt seit gestern nicht mehr.
Seit gestern ist die Verbindung im Büro sehr langsam.
Bitte schicken Sie mir die Rechnung noch einmal.
Die Rechnung für März ist nicht richtig.
Ich habe das Passwort vergessen und brauche Hilfe.
Der neue Router im Büro ist sehr langsam.
Können Sie mir bitte mit dem Drucker helfen?
Ich habe die Rechnung für den Router nicht bekommen.
Der neue Drucker von Schneider druckt nicht, und ich brauche Hilfe.
""",
    "fr": """
L'imprimante du bureau n'imprime plus depuis hier.
Depuis hier, la connexion du bureau est très lente.
Envoyez-moi encore une fois la facture, s'il vous plaît.
La facture du mois de mars n'est pas correcte.
J'ai oublié le mot de passe et j'ai besoin d'aide.
Le nouveau routeur du bureau est très lent.
Pouvez-vous m'aider avec l'imprimante ?
Je n'ai pas reçu la facture d'un nouveau routeur.
L’imprimante de Dubois n’est pas lente, et le routeur n’a pas besoin d’aide.
""",
    "tr": """
Ofisteki yazıcı dünden beri çalışmıyor.
Dünden beri ofisteki bağlantı çok yavaş.
Faturayı bana tekrar gönderir misiniz?
Mart ayının faturası doğru değil.
Şifremi unuttum ve yardıma ihtiyacım var.
İnternet bağlantısı ofisteki yazıcı için çok yavaş.
Işık yanıyor ama yazıcı çalışmıyor.
Yeni modemin faturası bana gelmedi.
YAZICI ÇALIŞMIYOR, İNTERNET ÇOK YAVAŞ, Işık yanıyor ve Yılmaz unuttum.
""",
    "ru": """
Принтер в офисе не печатает со вчерашнего дня.
Со вчерашнего дня соединение в офисе очень медленное.
Пожалуйста, пришлите мне счёт ещё раз.
Счёт за март неправильный.
Я забыл пароль, и мне нужна помощь.
Новый роутер в офисе очень медленный.
Помогите мне, пожалуйста, с принтером в офисе.
Я не получил счёт за новый роутер.
Мне нужна помощь: новый принтер Иванова в офисе не печатает.
""",
    "ar": """
الطابعة في المكتب لا تعمل منذ أمس.
منذ أمس الاتصال في المكتب بطيء جدا.
من فضلك أرسل لي الفاتورة مرة أخرى.
الفاتورة في شهر مارس غير صحيحة.
نسيت كلمة المرور وأحتاج إلى مساعدة.
الجهاز الجديد في المكتب بطيء جدا.
هل يمكنك مساعدتي في الطابعة من فضلك؟
لم تصل لي الفاتورة منذ شهر.
الجهاز الجديد في المكتب بطيء جدا منذ أمس، وأحتاج إلى مساعدة خالد.
""",
    "zh": """
办公室的打印机从昨天开始不能打印。
从昨天开始，办公室的网络很慢。
请再发一次发票给我。
三月的发票不正确。
我忘记了密码，需要帮助。
办公室的新路由器很慢。
请帮助我使用打印机。
我没有收到路由器的发票。
办公室的新打印机很慢，我需要王小明的帮助。
""",
    "ja": """
事務所のプリンターは昨日から印刷できません。
昨日から事務所の接続がとても遅いです。
請求書をもう一度送ってください。
三月の請求書は正しくありません。
パスワードを忘れました。助けてください。
事務所の新しいルーターはとても遅いです。
プリンターの使い方を教えてください。
ルーターの請求書が届いていません。
事務所の新しいプリンターはとても遅いです。田中さんに送ってください。
""",
    "th": """
เครื่องพิมพ์ในสำนักงานไม่ทำงานตั้งแต่เมื่อวาน
ตั้งแต่เมื่อวานอินเทอร์เน็ตในสำนักงานช้ามาก
กรุณาส่งใบแจ้งหนี้ให้ฉันอีกครั้ง
ใบแจ้งหนี้ของเดือนมีนาคมไม่ถูกต้อง
ฉันลืมรหัสผ่านและต้องการความช่วยเหลือ
เครื่องใหม่ในสำนักงานช้ามาก
กรุณาช่วยฉันใช้เครื่องพิมพ์
ฉันไม่ได้รับใบแจ้งหนี้ของเครื่องใหม่
เครื่องพิมพ์ใหม่ในสำนักงานช้ามาก สมชายต้องการความช่วยเหลือ
""",
    "km": """
ម៉ាស៊ីនបោះពុម្ពនៅការិយាល័យមិនដំណើរការតាំងពីម្សិលមិញ
តាំងពីម្សិលមិញអ៊ីនធឺណិតនៅការិយាល័យយឺតណាស់
សូមផ្ញើវិក្កយបត្រឱ្យខ្ញុំម្តងទៀត
ខ្ញុំភ្លេចពាក្យសម្ងាត់ហើយត្រូវការជំនួយ
ម៉ាស៊ីនបោះពុម្ពនៅការិយាល័យយឺតណាស់ ខ្ញុំនិងសុខាត្រូវការជំនួយ
""",
}
"""Public texts of which a space is made and, last, a private one, in which one name is in no space."""


def public(language: str) -> list[str]:
    """Return the public texts of a language."""
    return TEXTS[language].strip().splitlines()[:-1]


def private(language: str) -> str:
    """Return the private text of a language."""
    return TEXTS[language].strip().splitlines()[-1]


def words_of(text: str, language: str | None) -> list[str]:
    """Return the words of a text as the tokenizer reads them, as they are written."""
    tokens = Tokenizer.of_words([], language=language).tokenize([text])
    return [tokens.text(token) for token in range(len(tokens)) if tokens.classes[token] == WORD]


def space_of(language: str | None, texts: list[str]) -> cv.Space:
    """Return a space of texts: words of a text are near each other; the language is recorded in it."""
    lines = [
        [word.lower() for word in words_of(text, language)]
        for text in languages.read(pa.array(texts), language).to_pylist()
    ]
    words = sorted({word for line in lines for word in line})
    vectors = np.random.default_rng(5).normal(0, 0.01, (len(words), len(lines)))
    counts = np.zeros(len(words), np.int64)
    for number, line in enumerate(lines):
        for word in line:
            vectors[words.index(word), number] += 1
            counts[words.index(word)] += 1
    return build_space(Vectors(words, vectors.astype(np.float32), counts=counts, language=language))


def release_of(language: str | None, policy: cv.TextPolicy | None = None, epsilon: float = EPSILON) -> cv.Release:
    """Return a release over the space of a language."""
    space = space_of(language, public(language or "de"))
    return cv.Release(cv.RingGeometric(space), cv.Budget(epsilon), policy or cv.TextPolicy(), KEY)


def unknown_share(release: cv.Release, text: str) -> float:
    """Return the share of the words of a text that the release's space lacks."""
    _, counts = release.kernel().privatize(pa.array([text]), ["row"], "text")
    return counts.unknown_share or 0.0


@dataclass(frozen=True)
class Figures:
    """What a release in a language makes of its private text; ``unread`` is the unknown share without a language."""

    retention: float
    unread: float
    unknown: float
    before: str
    after: str


def figures(language: str) -> Figures:
    """Return the figures of a language."""
    release, text = release_of(language), private(language)
    unread = space_of(None, public(language))
    plain = cv.Release(cv.RingGeometric(unread), cv.Budget(EPSILON), cv.TextPolicy(), KEY)
    (after,) = cv.privatize([text], release, ["row"])
    shares = unknown_share(plain, text), unknown_share(release, text)
    return Figures(release.mechanism.retention(EPSILON), *shares, text, after)


def table() -> str:
    """Return the table of the page, and the names of all languages."""
    rows = [
        "| language | words unchanged | unknown without | unknown with | before | after |",
        "|---|---|---|---|---|---|",
    ]
    for language in TEXTS:
        of = figures(language)
        shares = f"{of.retention:.0%} | {of.unread:.0%} | {of.unknown:.0%}"
        rows.append(f"| `{language}` | {shares} | {of.before} | {of.after} |")
    names = ", ".join(f"{language['name']} (`{code}`)" for code, language in languages.known().items())
    return "\n".join([*rows, "", *textwrap.wrap(f"All names: {names}.", 120, break_on_hyphens=False)]) + "\n"


def page(text: str) -> str:
    """Return the page with the present table."""
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
