/** Edits after which a word is another one. */
const editsMax = 2

/** Lists the words that are closest to a mistyped one: at most two letters missing, added, replaced or swapped. */
export function similarWords(typed: string, words: readonly string[]): string[] {
  const distances = [...new Set(words)].map((word) => ({ word, distance: countEdits(typed, word) }))
  // Half of a short word is not the word any more.
  const near = distances.filter(
    ({ word, distance }) => distance <= editsMax && distance < Math.min(word.length, typed.length) / 2,
  )
  const least = Math.min(...near.map(({ distance }) => distance))
  return near.filter(({ distance }) => distance === least).map(({ word }) => word)
}

/** Counts the edits between two words (optimal string alignment distance). */
function countEdits(a: string, b: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      current[j] = Math.min(
        (previous[j] ?? 0) + 1,
        (current[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (beforePrevious[j - 2] ?? 0) + 1 : Infinity,
      )
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
