/** Largest distance of two words that are near each other. */
export const nearMax = 3

/**
 * Computes the Damerau-Levenshtein distance (optimal string alignment): the number of letters to insert, delete, replace or
 * swap with their neighbor. For lengths that differ by more than `nearMax`, it is the difference, a lower bound: a key can be
 * as long as the file.
 */
export function editDistance(a: string, b: string): number {
  const difference = Math.abs(a.length - b.length)
  if (difference > nearMax) return difference
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...b].entries()) {
      const changed = (previous[column] ?? 0) + (letter === other ? 0 : 1)
      const isSwapped = row > 0 && column > 0 && letter === b[column - 1] && a[row - 1] === other
      const swapped = isSwapped ? (beforePrevious[column - 1] ?? 0) + 1 : Infinity
      current.push(Math.min(changed, swapped, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
