"""Words: what counts as one, which say little, and which say that something matters.

The lists are short and written by hand. They know English; other languages get by with numbers,
names, rarity and position.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_WORD_CHARS = 40

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
CJK = re.compile(f"[{_CJK}]")
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:['’.\-_][^\W_{_CJK}]+)*")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _set(
    """a about above after again all almost also always am an and any anyone anything are aren't
    around as at away back be because been before being between both but by came can can't cannot
    come comes coming could couldn't did didn't do does doesn't doing don't done down during each
    either else enough even ever every everyone everything few for from get gets getting go goes
    going gonna gone got had hadn't has hasn't have haven't having he he'd he'll he's hello her here
    here's hers hey hi him his how how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's
    its itself just keep kind know lately less let let's like look looks lot lots made make makes
    making many may maybe me mean means might mine more most much must my myself need never no nor
    not nothing now of off oh ok okay on once one ones only onto or other our ours out over own
    perhaps please quite rather really same say saying see seem seems shall she she'd she'll she's
    should so some someone something sometimes soon still stuff such take taking than that that'll
    that's thats the their theirs them themselves then there there's these they they'd they'll
    they're they've thing things this those though through to together too try trying under
    until up upon us use very wanna want was wasn't way we we'd we'll we're we've well went were
    weren't what what's when where which while who who's why will with without won't would wouldn't
    yeah yep yes yet you you'd you'll you're you've your yours yourself gotta kinda sorta cause cuz
    'cause user assistant said asked"""
)

#: Words of praise, thanks and small talk. They carry mood, seldom a fact.
CHATTY = _set(
    """absolutely agree amazing appreciate appreciated awesome beautiful best better bet bless blast
    brilliant bye care chat cheer cheers congrats congratulations cool cute definitely delighted
    enjoy enjoying enjoyed exactly excellent exciting excited fab fabulous fantastic feel feeling
    feelings feels fine fun fun! funny glad good goodness gorgeous grateful great guess haha hah
    happy hear hearing hope hopefully hoping impressive incredible indeed inspiration inspire
    inspired inspiring interesting journey joy keep key kudos life lol lovely luck lucky magical
    miss moment moments nice omg pleasure positive precious proud rewarding right safe sorry sounds
    special stay super supportive sure sweet talk terrific thank thankful thanks thoughtful
    thrilled totally true truly understand understanding vibe vibes welcome wishing wishes wish
    wonderful wow yay you'll important helps help helpful helping amaze believe forward surely
    journey peaceful perfect tight reminder remind super hmm ha aww aw ah"""
)

FIRST_PERSON = _set(
    """i i'm i've i'd i'll im ive my me mine myself we we're we've we'd we'll our ours us
    ich mein meine meinen wir unser unsere yo mi mis nosotros eu meu minha nós je j'ai mon ma mes
    nous moja mój moje mam jestem"""
)
SECOND_PERSON = _set("""you you're you've you'd you'll your yours yourself u ur""")
NEGATION = _set(
    """no not never none nothing neither nor without cannot can't don't doesn't didn't won't isn't
    aren't wasn't weren't wouldn't couldn't shouldn't haven't hasn't nicht kein keine nie nunca
    jamais pas ne não nie"""
)

#: Without one of these nothing is asked of anyone.
ASKING = _set("can could would will how please help should what which me")

#: Decisions, wishes, tastes, duties.
DECISION = _set(
    """decide decided decides deciding decision choose chose chosen choosing want wants wanted
    wanting prefer prefers preferred hate hates hated love loves loved like likes liked dislike
    dislikes favorite favourite allergic allergy vegan vegetarian need needs needed must require
    requires required plan plans planned planning goal goals aim dream dreams intend promise
    promised agreed agree commit committed hope insist refuse refused avoid book booked reserve
    reserved order ordered apply applied applying sign signed cancel cancelled canceled
    schedule scheduled rescheduled postponed hired fired quit resign resigned accept accepted reject
    rejected approve approved interested keen passionate consider considering thinking looking
    researching saving 决定 喜欢 讨厌 需要 想要 打算 计划 选择 预订"""
)
#: Things that happened or were done.
EVENT = _set(
    """adopted arrived ate attended baked began born bought broke brought built called camped came
    caught celebrated climbed completed cooked crashed created dated delivered designed developed
    died discovered divorced drew drove earned enrolled failed fell finished fixed flew found fought
    gave graduated grew got held helped hiked hit hosted hurt injured installed invited joined
    launched learned learnt left lost made married met moved met opened organized organised painted
    paid participated passed performed picked planted played posted presented promoted published
    raised ran read received recorded released rescued retired returned sent shipped shot signed
    sold spent started stayed stole studied switched taught took toured trained travelled traveled
    visited volunteered walked watched went won wore worked wrote set saw tried adopt join start
    finish learn visit attend open teach volunteer perform publish sell buy move paint
    write play train cook bake collect"""
)
CHANGE = _set(
    """instead anymore switched switch changed change changing replaced replace now moved used
    former formerly previously updated update renamed correction actually longer stopped stop quit
    since new"""
)
DONE_WORDS = _set(
    """signed paid passed delivered finished completed done shipped submitted fixed solved resolved
    merged deployed sent received confirmed graduated approved closed installed booked"""
)
DEADLINE = _set(
    """deadline due by until before expires expiry appointment meeting interview exam flight launch
    release renewal tomorrow tonight urgent asap"""
)
#: Family, animals, work, places, health, money: what a life is described with.
LIFE = _set(
    """mother mom mum father dad parents parent brother sister son daughter wife husband partner
    girlfriend boyfriend fiancé fiancée fiance fiancee spouse kid kids child children baby family
    grandma grandmother grandpa grandfather aunt uncle cousin nephew niece friend friends roommate
    neighbor neighbour colleague coworker boss manager team dog dogs cat cats puppy kitten pet pets
    horse rabbit bird fish turtle turtles hamster job work office company business startup career
    degree school university college class course internship student teacher doctor nurse engineer
    lawyer home house apartment flat city town village country street address neighborhood born
    birthday wedding anniversary vacation trip holiday conference hospital surgery injury diagnosis
    diagnosed medication therapy diet illness pregnant salary rent mortgage loan budget savings car
    bike phone laptop book books novel movie film show series song band album concert game games
    tournament team sport gym yoga guitar piano violin painting drawing pottery dance recipe dish
    meal restaurant garden beach mountain mountains lake park museum hike camping church award
    prize competition project hobby hobbies name named called nickname necklace gift
    tradition language instrument"""
)
#: What must not be forgotten, whoever says it.
HEALTH = _set(
    """allergic allergy allergies asthma diabetes diabetic epilepsy celiac coeliac pregnant
    medication allergisch alergia alérgico alérgica allergique uczulony uczulona 过敏"""
)
VITAL = HEALTH | _set(
    """emergency never always mustn't deadline critical outage breach decided 紧急 截止"""
)
MODAL = _set("""i'd i'll we'd we'll would should could can might may you your you'd you'll""")
MONTH_DAY_WORDS = _set(
    """january february march april june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday"""
)
NUMBERS_AND_UNITS = _set(
    """one two three four five six seven eight nine ten twelve twenty thirty hundred thousand first
    second third last next past previous other half whole same second minute hour day night morning
    evening afternoon week weekend month year years months weeks days hours minutes time times today
    tonight tomorrow yesterday january february march april june july august september october
    november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    monday tuesday wednesday thursday friday saturday sunday pound pounds euro euros dollar dollars
    percent point part piece side end start way bit lot number list line word question answer idea
    reason rule person people man woman guy place fact case old new big small long short full real
    only very right wrong good bad rest total"""
)
NO_TITLE = EVENT | CHANGE | DONE_WORDS | DEADLINE | MONTH_DAY_WORDS | DECISION


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return a rough stem, enough to see that two forms are one word."""
    if not word.isascii() or len(word) < 5 or not word.isalpha():
        return word
    for ending in ("ing", "ies", "ed", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)]
            return base[:-1] if len(base) > 3 and base[-1] == base[-2] else base
    return word


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; runs of Chinese or kana become pairs of signs."""
    tokens: list[str] = _TOKEN.findall(text.lower().replace("’", "'"))
    if "'s" in text or "’s" in text:
        tokens = [t[:-2] if t.endswith("'s") and len(t) > 5 else t for t in tokens]
    if text.isascii() or CJK.search(text) is None:
        return tokens
    out: list[str] = []
    for token in tokens:
        if CJK.match(token):
            out.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        else:
            out.append(token)
    return out


def content(tokens: list[str]) -> list[str]:
    """Return the stems that tell one statement from another, in order and without repeats."""
    seen = dict.fromkeys(
        stem(token)
        for token in tokens
        if token not in STOP and token not in CHATTY and (len(token) > 1 or token.isdigit())
    )
    return list(seen)
