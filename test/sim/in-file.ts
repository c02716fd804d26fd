/** One change of the source that takes a guarantee away, and the unit tests that should notice it. */
export type Sabotage = { name: string; file: string; from: string; to: string; tests: readonly string[] }

/** Lists changes of one file. `from` occurs once in it. */
export const inFile = (
  file: string,
  tests: readonly string[],
  changes: ReadonlyArray<[name: string, from: string, to: string]>,
) =>
  changes.map(([name, from, to]): Sabotage => ({
    name,
    file: `src/${file}`,
    from,
    to,
    tests: tests.map((one) => `test/${one}.test.ts`),
  }))
