/**
 * Countries (ISO 3166-1 alpha-2) whose main written language has texts in `locales.ts`. All others get
 * English, and so do India, Singapore and the Philippines, where banks send codes in English.
 */
const countriesByLocale: Record<string, string> = {
  ar: 'AE BH DZ EG EH IQ JO KW LB LY MA MR OM PS QA SA SD SY TN YE',
  bn: 'BD',
  cs: 'CZ',
  da: 'DK FO GL',
  de: 'AT CH DE LI',
  el: 'CY GR',
  es: 'AR BO CL CO CR CU DO EC ES GQ GT HN MX NI PA PE PR PY SV UY VE',
  fa: 'AF IR',
  fi: 'FI',
  fr: 'BF BI BJ BL CD CF CG CI CM DJ FR GA GF GN GP HT KM LU MC MF MG ML MQ NC NE PF PM RE SN TD TG WF YT',
  he: 'IL',
  hu: 'HU',
  id: 'ID',
  it: 'IT SM VA',
  ja: 'JP',
  ko: 'KP KR',
  ms: 'BN MY',
  nb: 'NO SJ',
  nl: 'AW BE BQ CW NL SR SX',
  pl: 'PL',
  pt: 'AO CV GW MZ PT ST TL',
  'pt-BR': 'BR',
  ro: 'MD RO',
  ru: 'BY KG KZ RU',
  sk: 'SK',
  sv: 'AX SE',
  th: 'TH',
  tr: 'TR',
  uk: 'UA',
  vi: 'VN',
  'zh-CN': 'CN',
  'zh-TW': 'HK MO TW',
}

const localeByCountry = new Map(
  Object.entries(countriesByLocale).flatMap(([locale, codes]) =>
    codes.split(' ').map((code) => [code, locale]),
  ),
)

/**
 * Locale of a country's main language; null if the country is unknown or there are no texts in its language.
 */
export const mainLanguageFor = (country: string | null): string | null =>
  localeByCountry.get(country ?? '') ?? null
