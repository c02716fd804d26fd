import { enabledChannels } from '../delivery/kit/provider-kinds.ts'
import { providerKinds } from '../delivery/providers/all-provider-kinds.ts'
import { inboxProvider, type DeliverySettings, type ProviderSettings } from '../domain/model/delivery.ts'
import type { ConfigUse } from './database.ts'
import { createTableReader } from './kind-tables.ts'
import type { FileEntry } from './toml-file.ts'
import { isPriceKey, readCurrency, readPrices } from './prices.ts'
import type { ConfigInput, Reader } from './reader.ts'
import { readRoutes, type RoutableProvider } from './routes.ts'
import { collectTables, providerNamePattern, type ConfigTable } from './tables.ts'

/** Reads the `[[providers]]` and `[[routes]]` tables. */
export function readDelivery(
  reader: Reader,
  input: ConfigInput,
  entries: readonly FileEntry[],
  use: ConfigUse,
): DeliverySettings {
  const { report } = reader
  const { readKind, readSwitch, readValues } = createTableReader(reader, input, {
    use,
    kinds: providerKinds,
    list: 'providers',
    one: 'provider',
    many: 'Providers',
    commonKeys,
    isReadElsewhere: isPriceKey,
  })
  /** Includes providers with problems, so that a route to one of them is not reported as well. */
  const names = new Map<string, RoutableProvider | undefined>()
  const providers: ProviderSettings[] = []
  const priced = new Map<string, string>()
  for (const table of collectTables(reader, entries, 'providers')) {
    const name = readName(table)
    const kind = readKind(table)
    if (name !== undefined) names.set(name, kind && { kind, channels: kind.channels, values: {} })
    if (name !== undefined && kind) {
      reader.values.push({ setting: `providers.${name}.kind`, value: kind.kind, origin: table.source })
    }
    const values = kind && readValues(table, kind, name ?? '?')
    if (name !== undefined && values)
      names.set(name, { kind, channels: enabledChannels(kind, values), values })
    const failoverOnBlock = readSwitch(table, 'failoverOnBlock', name ?? '?')
    const feedback = readSwitch(table, 'feedback', name ?? '?')
    const prices = readPrices(reader, input, table, name ?? '?')
    const firstPrice = [...table.keys].find(([key]) => isPriceKey(key))?.[1].source
    if (firstPrice !== undefined) priced.set(name ?? '?', firstPrice)
    if (name !== undefined && kind && values) {
      const common = {
        ...(failoverOnBlock && { failoverOnBlock }),
        ...(feedback === false && { feedback }),
        ...(prices && { prices }),
      }
      providers.push({ name, kind: kind.kind, values, ...common })
    }
  }
  const routes = readRoutes(reader, collectTables(reader, entries, 'routes'), names, new Set(priced.keys()))
  const currency = readCurrency(reader, [...priced.values()][0])
  return { providers, routes, ...(currency !== null && { currency }) }

  function readName({ source, keys }: ConfigTable): string | undefined {
    const entry = keys.get('name')
    const location = entry?.source ?? source
    if (
      typeof entry?.value !== 'string' ||
      !providerNamePattern.test(entry.value) ||
      entry.value === inboxProvider
    ) {
      const message = entry ? 'This is not a valid provider name.' : 'The provider has no name.'
      report(
        location,
        message,
        `Use at most 32 characters of a-z, 0-9 and -, starting with a letter, and not ${inboxProvider}.`,
      )
      return undefined
    }
    if (!names.has(entry.value)) return entry.value
    report(location, `Another provider is already named ${entry.value}.`, 'Give each provider a unique name.')
    return undefined
  }
}

/** Settings that every kind of provider has. */
const commonKeys: readonly string[] = ['name', 'kind', 'failoverOnBlock', 'feedback', 'price', 'prices']
