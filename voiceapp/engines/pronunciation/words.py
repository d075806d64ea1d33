"""English abbreviations, units and signs, and the words for them."""

from __future__ import annotations

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHORT_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

CURRENCIES = {
    "$": ("dollar", "dollars", "cents"),
    "€": ("euro", "euros", "cents"),
    "£": ("pound", "pounds", "pence"),
    "¥": ("yen", "yen", "sen"),
}
"""Sign: one, many, the hundredth parts."""

UNITS = {
    "%": ("percent", "percent"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "m/s": ("meter per second", "meters per second"),
    "km": ("kilometer", "kilometers"),
    "m": ("meter", "meters"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "l": ("liter", "liters"),
    "L": ("liter", "liters"),
    "ml": ("milliliter", "milliliters"),
    "h": ("hour", "hours"),
    "min": ("minute", "minutes"),
    "s": ("second", "seconds"),
    "ms": ("millisecond", "milliseconds"),
    "kB": ("kilobyte", "kilobytes"),
    "KB": ("kilobyte", "kilobytes"),
    "MB": ("megabyte", "megabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"),
    "Mbit/s": ("megabit per second", "megabits per second"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "W": ("watt", "watts"),
    "kW": ("kilowatt", "kilowatts"),
    "kWh": ("kilowatt hour", "kilowatt hours"),
    "V": ("volt", "volts"),
    "km²": ("square kilometer", "square kilometers"),
    "m²": ("square meter", "square meters"),
    "m³": ("cubic meter", "cubic meters"),
}
"""Sign: after one, after any other number."""

FRACTIONS = {"½": "one half", "¼": "one quarter", "¾": "three quarters", "⅓": "one third", "⅔": "two thirds"}

ROMAN = {
    **{"II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9, "XI": 11, "XII": 12},
    **{"I": 1, "V": 5, "X": 10},
}

ABBREVIATIONS = (
    (r"\bDr\.(?=\s+[A-Z])", "Doctor"),
    (r"\bMr\.", "Mister"),
    (r"\bMrs\.", "Missus"),
    (r"\bMs\.", "Miss"),
    (r"\bProf\.", "Professor"),
    (r"\bSt\.(?=\s+[A-Z])", "Saint"),
    (r"(?<=[a-z])\sSt\b\.?(?!\s+[a-z])", " Street"),
    (r"(?<=[a-z])\sAve\b\.?", " Avenue"),
    (r"(?<=[a-z])\sRd\b\.?", " Road"),
    (r"(?<=[a-z])\sBlvd\b\.?", " Boulevard"),
    (r"\bApt\.", "apartment"),
    (r"\b[Ee]\.\s?g\.,?", "for example,"),
    (r"\b[Ii]\.\s?e\.,?", "that is,"),
    (r"\betc\.(?=\s+[A-Z]|$)", "et cetera."),
    (r"\betc\.", "et cetera"),
    (r"\bvs\b\.?", "versus"),
    (r"\bapprox\.", "approximately"),
    (r"\bca\.(?=\s?\d)", "about"),
    (r"\bNos?\.(?=\s?\d)", "number "),
    (r"\bp\.(?=\s?\d)", "page "),
    (r"\bpp\.(?=\s?\d)", "pages "),
    (r"\bFig\.(?=\s?\d)", "figure "),
    (r"\bJr\b\.?", "Junior"),
    (r"\bSr\.", "Senior"),
    (r"\bInc\.", "Incorporated"),
    (r"\bLtd\b\.?", "Limited"),
    (r"\bCorp\.", "Corporation"),
    (r"\bdept\.", "department"),
    (r"\b([A-Z])\.([A-Z])\.(?=\s+[A-Z][a-z])(?!\s+[A-Z]\.)", r"\1 \2"),
    (r"\b([A-Z])\.([A-Z])\.([A-Z])\.", r"\1 \2 \3"),
    (r"\b([A-Z])\.([A-Z])\.", r"\1 \2"),
)
"""Pattern and words. A stop that also ends the sentence stays with it where the words can tell."""

SYMBOLS = (
    (r"\band/or\b", "and or"),
    (r"\s?&\s?", " and "),
    (r"(?<=[\d\s])\+(?=[\s\d])", " plus "),
    (r"\s=\s|(?<=\d)=(?=\d)", " equals "),
    (r"(?<=\d)\s?[×x]\s?(?=\d)", " times "),
    (r"(?<=\d)\s?[÷]\s?(?=\d)", " divided by "),
    (r"≈\s?|~(?=\d)", "about "),
    (r"\s<\s", " less than "),
    (r"\s>\s", " greater than "),
    (r"#(?=\d)", "number "),
    (r"(?<=\w)@(?=\w)|\s@\s", " at "),
    (r"(?<=\w)\s?/\s?(?=[A-Za-z])", " or "),
    (r"→", " to "),
    (r"©|®|™", ""),
)
