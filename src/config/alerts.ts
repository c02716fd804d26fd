import type { AlertDestinationKind } from '../delivery/alerts/alert-kind.ts'
import { alertDestinationKinds } from '../delivery/alerts/all-alert-kinds.ts'
import { alertSeverities, type AlertDestination, type AlertSeverity } from '../domain/model/alert.ts'
import { isLoopback } from '../shared/loopback.ts'
import type { ConfigUse } from './database.ts'
import { createTableReader } from './kind-tables.ts'
import type { ConfigInput, Reader } from './reader.ts'
import { collectTables, providerNamePattern, type ConfigTable } from './tables.ts'
import type { FileEntry } from './toml-file.ts'

/** Reads the `[[alerts]]` tables: the destinations of alerts to the operator. */
export function readAlerts(
  reader: Reader,
  input: ConfigInput,
  entries: readonly FileEntry[],
  use: ConfigUse,
): AlertDestination[] {
  const { report, values: shown } = reader
  const { readKind, readValues } = createTableReader(reader, input, {
    use,
    kinds: alertDestinationKinds,
    list: 'alerts',
    one: 'alert',
    many: 'Alerts',
    commonKeys: ['name', 'kind', 'min'],
  })
  const names = new Set<string>()
  return collectTables(reader, entries, 'alerts').flatMap((table) => {
    const kind = readKind(table)
    const name = readName(table, kind?.kind)
    const min = readMin(table)
    if (!kind) return []
    shown.push({ setting: `alerts.${name}.kind`, value: kind.kind, origin: table.source })
    if (table.keys.has('min'))
      shown.push({ setting: `alerts.${name}.min`, value: min, origin: table.keys.get('min')?.source ?? '' })
    const values = readValues(table, kind, name)
    if (!values) return []
    requireEncryption(table, kind, values)
    return [{ name, kind: kind.kind, min, values }]
  })

  /** Reads the name, which is the kind by default. */
  function readName({ source, keys }: ConfigTable, kind: string | undefined): string {
    const entry = keys.get('name')
    const name = entry?.value ?? kind
    if (typeof name !== 'string' || !providerNamePattern.test(name)) {
      if (entry)
        report(
          entry.source,
          'This is not a valid name of an alert.',
          'Use at most 32 characters of a-z, 0-9 and -, starting with a letter.',
        )
      return '?'
    }
    if (names.has(name))
      report(
        entry?.source ?? source,
        `Another alert is already named ${name}.`,
        'Give each a name of its own: name = "…".',
      )
    names.add(name)
    return name
  }

  function readMin({ keys }: ConfigTable): AlertSeverity {
    const entry = keys.get('min')
    const min = alertSeverities.find((severity) => severity === entry?.value)
    if (entry && !min)
      report(entry.source, 'This is not a severity.', `Use one of ${alertSeverities.join(', ')}.`)
    return min ?? 'warning'
  }

  /** A password, and what the alerts say, must not cross a network unencrypted. */
  function requireEncryption(
    { source, keys }: ConfigTable,
    { kind }: AlertDestinationKind,
    { security, host = '' }: Readonly<Record<string, string>>,
  ) {
    if (kind !== 'email' || security !== 'none' || isLoopback(host)) return
    report(
      keys.get('security')?.source ?? source,
      'security is none, and the SMTP server is on another machine.',
      'Use starttls or tls; none is allowed on loopback only.',
    )
  }
}
