"""Languages by their tags (BCP 47): which are the same, and what they are called."""

from collections.abc import Iterable

_NAMES = """
aa Afar, ab Abkhazian, ae Avestan, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic, as Assamese, av
Avaric, ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bi Bislama, bm Bambara, bn Bangla,
bo Tibetan, br Breton, bs Bosnian, ca Catalan, ce Chechen, ch Chamorro, co Corsican, cr Cree, cs Czech, cu
Church Slavic, cv Chuvash, cy Welsh, da Danish, de German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English,
eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, ff Fula, fi Finnish, fil Filipino, fj Fijian, fo
Faroese, fr French, fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati, gv
Manx, ha Hausa, haw Hawaiian, he Hebrew, hi Hindi, ho Hiri Motu, hr Croatian, ht Haitian Creole, hu Hungarian,
hy Armenian, hz Herero, ia Interlingua, id Indonesian, ie Interlingue, ig Igbo, ii Sichuan Yi, ik Inupiaq, io
Ido, is Icelandic, it Italian, iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kj
Kuanyama, kk Kazakh, kl Kalaallisut, km Khmer, kn Kannada, ko Korean, kr Kanuri, ks Kashmiri, ku Kurdish, kv
Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish, lg Ganda, li Limburgish, ln Lingala, lo Lao, lt
Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy, mh Marshallese, mi Māori, mk Macedonian, ml Malayalam, mn
Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, na Nauru, nb Norwegian Bokmål, nd North Ndebele, ne
Nepali, ng Ndonga, nl Dutch, nn Norwegian Nynorsk, no Norwegian, nr South Ndebele, nv Navajo, ny Nyanja, oc
Occitan, oj Ojibwa, om Oromo, or Odia, os Ossetic, pa Punjabi, pi Pali, pl Polish, ps Pashto, pt Portuguese, qu
Quechua, rm Romansh, rn Rundi, ro Romanian, ru Russian, rw Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se
Northern Sami, sg Sango, si Sinhala, sk Slovak, sl Slovenian, sm Samoan, sn Shona, so Somali, sq Albanian, sr
Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th
Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr Turkish, ts Tsonga, tt Tatar, tw Twi, ty
Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi Vietnamese, vo Volapük, wa Walloon, wo Wolof,
xh Xhosa, yi Yiddish, yo Yoruba, yue Cantonese, za Zhuang, zh Chinese, zu Zulu
"""
"""ISO 639-1, and some that have no code there, by their English names."""
NAMES = {
    code: name for code, _, name in (entry.strip().partition(" ") for entry in _NAMES.replace("\n", " ").split(","))
}

OTHER_NAMES = {"nb": "no", "nn": "no", "fil": "tl", "iw": "he", "in": "id", "jw": "jv", "cmn": "zh"}
"""Languages that BCP 47 or an engine calls otherwise than most engines do."""


def primary(tag: str) -> str:
    """The language of a tag, without its country and under one name: "de" of "de-AT", "no" of "nb_NO"."""
    first = _first(tag)
    return OTHER_NAMES.get(first, first)


def named_in(tags: Iterable[str], tag: str) -> str:
    """The one of `tags` that is the language `tag`, whatever the country of either; empty: none is."""
    tags = tuple(tags)
    exact = (each for each in tags if each.lower() == tag.lower())
    return next(exact, next((each for each in tags if primary(each) == primary(tag)), "")) if tag else ""


def english_name(tag: str) -> str:
    """What a language is called in English, "French" of "fr-CA"; empty: a language without a name here."""
    return NAMES.get(_first(tag)) or NAMES.get(primary(tag), "")


def _first(tag: str) -> str:
    return tag.lower().replace("_", "-").partition("-")[0]
