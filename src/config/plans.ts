import { isTable, type FileEntry } from './toml-file.ts'
import type { ResolvedSetting, Reader } from './reader.ts'
import { fileKeys } from './settings.ts'
import { suggest } from '../shared/suggestion.ts'
import { FREE_PLAN, type Plan, type Plans } from '../domain/model/plans.ts'

export const ratePerMinuteMax = 10_000
const countMax = 1_000_000

const bounds: Record<keyof Plan, readonly [min: number, max: number]> = {
  projects: [1, countMax],
  applications: [1, countMax],
  sendPerMinute: [0, ratePerMinuteMax],
  verifyPerMinute: [0, ratePerMinuteMax],
  consolePerMinute: [0, ratePerMinuteMax],
  lookupsPerMinute: [0, ratePerMinuteMax],
}

type RateKey = 'sendPerMinute' | 'verifyPerMinute' | 'consolePerMinute' | 'lookupsPerMinute'

type Rates = Record<RateKey, ResolvedSetting<number | null>>

/**
 * Reads the `[plans.NAME]` tables. Values that a table omits are inherited from `free`, and those that `free` omits from
 * the built-in `FREE_PLAN`. A rate that is set for the whole installation overrides the rate of every plan.
 */
export function readPlans(reader: Reader, entries: readonly FileEntry[], rates: Rates): Plans {
  const planTables = readTables(reader, entries)
  const origins = new Map<string, string>()

  function buildPlan(name: string, base: Readonly<Plan>, origin: (key: keyof Plan) => string): Plan {
    const resolveNumber = (key: keyof Plan): number => {
      const configured = planTables.get(name)?.get(key)
      origins.set(`${name}.${key}`, configured?.origin ?? origin(key))
      return configured?.value ?? base[key]
    }
    const resolveRate = (key: RateKey): number => {
      const { value, source } = rates[key]
      const planValue = resolveNumber(key)
      if (value === null) return planValue
      origins.set(`${name}.${key}`, source ?? 'default')
      return value
    }
    return {
      projects: resolveNumber('projects'),
      applications: resolveNumber('applications'),
      sendPerMinute: resolveRate('sendPerMinute'),
      verifyPerMinute: resolveRate('verifyPerMinute'),
      consolePerMinute: resolveRate('consolePerMinute'),
      lookupsPerMinute: resolveRate('lookupsPerMinute'),
    }
  }

  const free = buildPlan('free', FREE_PLAN, () => 'default')
  const plans: { free: Plan; [name: string]: Plan } = { free }
  for (const name of planTables.keys())
    if (name !== 'free') plans[name] = buildPlan(name, free, () => 'plans.free')
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

type PlanNumbers = Map<keyof Plan, { value: number; origin: string }>

function readTables(reader: Reader, entries: readonly FileEntry[]): Map<string, PlanNumbers> {
  const tables = new Map<string, PlanNumbers>()
  for (const entry of entries) {
    const [section, name, key, ...deeper] = entry.path
    if (section !== 'plans') continue
    const source = reader.formatSource(entry)
    if (name !== undefined && !/^[a-z][a-z0-9-]{0,31}$/.test(name)) {
      reader.report(
        source,
        'This is not a valid plan name.',
        'Use at most 32 characters of a-z, 0-9 and -, starting with a letter.',
      )
    } else if (name === undefined || key === undefined) {
      if (!isTable(entry.value))
        reader.report(source, 'A plan must be a table.', 'Write [plans.NAME] and its numbers below it.')
      else if (name !== undefined) tables.set(name, tables.get(name) ?? new Map())
    } else if (!isPlanKey(key) || deeper.length > 0) {
      const planKeys = Object.keys(bounds)
      reader.report(
        source,
        `Plans have no setting ${key}.`,
        suggest(key, [...planKeys, ...fileKeys]) ?? `Use ${planKeys.join(', ')}.`,
      )
    } else {
      const numbers: PlanNumbers = tables.get(name) ?? new Map()
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
    `${key} is out of range or not a whole number.`,
    `Use a whole number from ${min} to ${max}.`,
  )
  return null
}

function isPlanKey(key: string): key is keyof Plan {
  return Object.hasOwn(bounds, key)
}
