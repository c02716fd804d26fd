import { isTable, type FileEntry } from './file.ts'
import type { Given, Reader } from './reader.ts'
import { FREE_PLAN, type Plan, type Plans } from '../domain/model/plans.ts'

export const ratePerMinuteMax = 10_000
const countMax = 1_000_000

const bounds: Record<keyof Plan, readonly [min: number, max: number]> = {
  projects: [1, countMax],
  applications: [1, countMax],
  sendPerMinute: [0, ratePerMinuteMax],
  verifyPerMinute: [0, ratePerMinuteMax],
}

type Rates = { sendPerMinute: Given<number | null>; verifyPerMinute: Given<number | null> }

/**
 * Reads the `[plans.NAME]` tables. What a table leaves out is as in `free`; `free` itself is as in the service's
 * document where nothing is said. A rate that is set for the whole installation goes over every plan's.
 */
export function readPlans(reader: Reader, entries: readonly FileEntry[], rates: Rates): Plans {
  const given = readTables(reader, entries)
  const origins = new Map<string, string>()

  function build(name: string, base: Readonly<Plan>, origin: (key: keyof Plan) => string): Plan {
    const number = (key: keyof Plan): number => {
      const own = given.get(name)?.get(key)
      origins.set(`${name}.${key}`, own?.origin ?? origin(key))
      return own?.value ?? base[key]
    }
    const rate = (key: keyof Rates): number => {
      const { value, source } = rates[key]
      const planned = number(key)
      if (value === null) return planned
      origins.set(`${name}.${key}`, source ?? 'default')
      return value
    }
    return {
      projects: number('projects'),
      applications: number('applications'),
      sendPerMinute: rate('sendPerMinute'),
      verifyPerMinute: rate('verifyPerMinute'),
    }
  }

  const free = build('free', FREE_PLAN, () => 'default')
  const plans: { free: Plan; [name: string]: Plan } = { free }
  for (const name of given.keys()) if (name !== 'free') plans[name] = build(name, free, () => 'plans.free')
  for (const [name, plan] of Object.entries(plans)) {
    for (const [key, value] of Object.entries(plan)) {
      reader.values.push({
        setting: `plans.${name}.${key}`,
        value,
        origin: origins.get(`${name}.${key}`) ?? 'default',
      })
    }
  }
  return plans
}

type Numbers = Map<keyof Plan, { value: number; origin: string }>

function readTables(reader: Reader, entries: readonly FileEntry[]): Map<string, Numbers> {
  const tables = new Map<string, Numbers>()
  for (const entry of entries) {
    const [section, name, key, ...deeper] = entry.path
    if (section !== 'plans') continue
    const source = reader.at(entry)
    if (name !== undefined && !/^[a-z][a-z0-9-]{0,31}$/.test(name)) {
      reader.report(
        source,
        'This cannot name a plan.',
        'Use up to 32 of a to z, 0 to 9 and -, a letter first.',
      )
    } else if (name === undefined || key === undefined) {
      if (!isTable(entry.value))
        reader.report(source, 'A plan is a table.', 'Write [plans.NAME] and its numbers below.')
      else if (name !== undefined) tables.set(name, tables.get(name) ?? new Map())
    } else if (!isPlanKey(key) || deeper.length > 0) {
      reader.report(source, `A plan has no ${key}.`, `It has ${Object.keys(bounds).join(', ')}.`)
    } else {
      const numbers: Numbers = tables.get(name) ?? new Map()
      const value = readNumber(reader, source, key, entry.value)
      if (value !== null) numbers.set(key, { value, origin: source })
      tables.set(name, numbers)
    }
  }
  return tables
}

function readNumber(reader: Reader, source: string, key: keyof Plan, value: unknown): number | null {
  const [min, max] = bounds[key]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
  reader.report(
    source,
    `${key} is not a number that a plan can have.`,
    `Give a whole number from ${min} to ${max}.`,
  )
  return null
}

function isPlanKey(key: string): key is keyof Plan {
  return Object.hasOwn(bounds, key)
}
