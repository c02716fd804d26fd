/** "Did you mean …?" for a name that is not known, or undefined where nothing is like it. */
export function suggest(name: string, known: readonly string[]): string | undefined {
  const nearest = known
    .filter((candidate) => isNear(name, candidate))
    .toSorted((a, b) => distance(plain(name), plain(a)) - distance(plain(name), plain(b)))[0]
  return nearest && `Did you mean ${nearest}?`
}

/** A slip of a few letters, another way to write the same words, the right key in the wrong table, half a name. */
export function isNear(name: string, candidate: string): boolean {
  const [given, meant] = [plain(name), plain(candidate)]
  const isCloseTo = distance(given, meant) <= Math.min(3, Math.floor(meant.length / 4))
  return isCloseTo || meant.startsWith(given) || lastKey(name) === lastKey(candidate)
}

const plain = (name: string) => name.toLowerCase().replace(/[_-]/g, '')
const lastKey = (name: string) => plain(name.split('.').at(-1) ?? '')

/** Levenshtein's distance: how many letters to add, drop or change. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...b].entries()) {
      const changed = (previous[column] ?? 0) + (letter === other ? 0 : 1)
      current.push(Math.min(changed, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
