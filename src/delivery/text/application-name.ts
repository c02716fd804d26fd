/** Longer names leave no room for the words around them in 70 units. */
const unitsMax = 30

const gsmEquivalents: Record<string, string> = {
  '‘': "'",
  '’': "'",
  ʼ: "'",
  '–': '-',
  '—': '-',
  '‐': '-',
  '‑': '-',
}

/**
 * An application's name as it may stand in a message, on one line and short. Whoever named the application is not whom
 * the message is trusted for, so nothing in it may look like a link, another code or a line for machines:
 *
 * - only letters, digits, spaces and a little punctuation remain; controls, direction marks, emoji, `@`, `#`, `/` and
 *   `:` go;
 * - a dot inside a word becomes a space (`example.com` → `example com`), as phones turn such words into links;
 * - a run of four digits or more goes, also one that is broken up by spaces or hyphens, as it would be taken for the
 *   code.
 *
 * @returns an empty text where no letter is left
 */
export function cleanApplicationName(name: string): string {
  const clean = name
    .normalize('NFC')
    .replaceAll(/[‘’ʼ–—‐‑]/g, (mark) => gsmEquivalents[mark] ?? ' ')
    // Joiners shape letters in Persian and in Indic scripts; anywhere else they only hide.
    .replaceAll(/(?<![\p{L}\p{M}])[\u200c\u200d]|[\u200c\u200d](?!\p{L})/gu, ' ')
    .replaceAll(/[^\u200d\u200c\p{L}\p{M}\p{Nd} &+'!(),.·-]/gu, ' ')
    .replaceAll(/\.(?=[^\s.])|\.(?=\.)/g, ' ')
    .replaceAll(/[(+]*\p{Nd}(?:[\s.,()'·+-]*\p{Nd}){3,}/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .replace(/^[^\p{L}\p{Nd}(]+/u, '')
  return /\p{L}/u.test(clean) ? shorten(clean).replace(/[\s,.('&+-]+$/, '') : ''
}

/** At most `unitsMax`, between words where one ends late enough, and never inside a character as people see it. */
function shorten(name: string): string {
  if (name.length <= unitsMax) return name
  let shortened = ''
  for (const { segment } of new Intl.Segmenter().segment(name)) {
    if (shortened.length + segment.length > unitsMax) break
    shortened += segment
  }
  const lastSpace = shortened.lastIndexOf(' ')
  const endsInWord = name[shortened.length] !== ' '
  return endsInWord && lastSpace > unitsMax / 2 ? shortened.slice(0, lastSpace) : shortened
}
