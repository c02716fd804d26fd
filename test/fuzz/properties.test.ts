import { expect, test } from 'bun:test'
import { models } from './models/all.ts'
import { properties } from './properties/all.ts'

test.each([...properties, ...models].map((property) => [property.name, property] as const))(
  '%s',
  async (_, property) => {
    // A fixed seed gives the same values each time; `npm run fuzz` generates others.
    expect(await property.check(property.shortRuns, 1)).toBeUndefined()
  },
  300_000,
)
