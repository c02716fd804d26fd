import type { Config } from '../../src/config/config.ts'
import type { HostAlerts } from '../../src/host/host.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'

/** Kinds that no other check of the doctor looks at. */
const ownKinds: readonly string[] = ['conversion', 'webhook']

/** Whether no other check covers an alert. Those of the guard that are critical are about a daily limit. */
const isOwn = ({ kind, severity }: HostAlerts['alerts'][number]) =>
  ownKinds.includes(kind) || (kind === 'guard' && severity === 'critical')

/**
 * Reports the alerts that no other check covers, and notices that could not be sent. Nothing without destinations.
 *
 * @param state null if the database cannot be read
 */
export function alertChecks({ alerts }: Pick<Config, 'alerts'>, state: HostAlerts | null): Check[] {
  const name = 'alerts'
  if (alerts.length === 0) return []
  const firing = state?.alerts.filter((alert) => isOwn(alert) && !alert.isClearing) ?? []
  const failed = state?.waiting.filter(({ failure }) => failure !== null) ?? []
  const failures = new Map(failed.map(({ destination, failure }) => [destination, failure]))
  const checks = [
    ...firing.map(({ severity, message, remedy }) =>
      (severity === 'critical' ? fault : warning)(name, message, remedy),
    ),
    ...[...failures].map(([destination, failure]) =>
      warning(
        name,
        `notices to ${destination} could not be sent: ${failure}`,
        `Correct its [[alerts]] table, then: otpd alerts test ${destination}`,
      ),
    ),
  ]
  return checks.length > 0 ? checks : [ok(name, `sent to ${alerts.map((one) => one.name).join(', ')}`)]
}
