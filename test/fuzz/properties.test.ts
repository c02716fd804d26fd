import { expect, test } from 'bun:test'
import { properties } from './properties/all.ts'

test.each(properties.map((property) => [property.name, property] as const))(
  '%s',
  async (_, property) => {
    expect(await property.check(property.shortRuns)).toBeUndefined()
  },
  60_000,
)
