import type { Reader } from './reader.ts'
import { parseEach, quote, type Parsed } from './values.ts'

export type ProofConfig = {
  /** Numbers of projects. */
  firebaseProjects: readonly string[]
}

/** Reads the `[proofs]` table. */
export const readProofs = (reader: Reader): ProofConfig => ({
  firebaseProjects: reader.read('firebaseProjects', parseProjects, []).value,
})

function parseProjects(text: string): Parsed<string[]> {
  return parseEach<string>(text, (word) =>
    /^[1-9]\d{4,19}$/.test(word)
      ? { value: word }
      : {
          fault: `${quote(word)} is not the number of a Firebase project.`,
          remedy: 'Use the project number, such as 123456789012, which is not the project ID.',
        },
  )
}
