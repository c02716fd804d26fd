/** Longer names leave no room for the rest of the message in 70 units (one UCS-2 part). */
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
 * Sanitizes an application's name for use in a message: one line, at most 30 units. Recipients trust the
 * sender, not the developer who chose the name, so nothing in it may look like a link, another code or a
 * machine-readable line:
 *
 * - keeps only letters, digits, spaces and some punctuation; removes control characters, direction marks,
 *   emoji, `@`, `#`, `/` and `:`;
 * - replaces a dot inside a word with a space (`example.com` → `example com`), because phones turn such words
 *   into links;
 * - removes runs of four or more digits, even if separated by spaces or hyphens, because they look like the
 *   code.
 *
 * @returns the empty string if no letter is left
 */
export function cleanApplicationName(name: string): string {
  const clean = name
    .normalize('NFC')
    .replaceAll(/[‘’ʼ–—‐‑]/g, (mark) => gsmEquivalents[mark] ?? ' ')
    // Joiners shape letters in Persian and Indic scripts; anywhere else they are invisible and dropped.
    .replaceAll(/(?<![\p{L}\p{M}])[\u200c\u200d]|[\u200c\u200d](?!\p{L})/gu, ' ')
    .replaceAll(/[^\u200d\u200c\p{L}\p{M}\p{Nd} &+'!(),.·-]/gu, ' ')
    .replaceAll(/\.(?=[^\s.])|\.(?=\.)/g, ' ')
    .replaceAll(/[(+]*\p{Nd}(?:[\s.,()'·+-]*\p{Nd}){3,}/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .replace(/^[^\p{L}\p{Nd}(]+/u, '')
  return /\p{L}/u.test(clean) ? shorten(clean).replace(/[\s,.('&+-]+$/, '') : ''
}

/** Cuts a name to `unitsMax`: between words if the last word ends late enough, never inside a grapheme. */
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
