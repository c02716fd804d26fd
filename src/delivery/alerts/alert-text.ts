import { resolvesAfterMs, type AlertEvent, type AlertNotice } from '../../domain/model/alert.ts'
import { formatAge } from '../../shared/operating-checks.ts'

/** Formats the title of a notice: `Critical: disk space: 90 MB free`. */
export function alertTitle({ event, kind, severity, message, since, at }: AlertNotice): string {
  const severityName = severity === 'critical' ? 'Critical' : 'Warning'
  const prefixes: Record<AlertEvent, string> = {
    firing: severityName,
    reminder: `Still: ${severityName}`,
    resolved: `Resolved after ${formatAge(since, at - resolvesAfterMs(kind))}`,
    test: 'Test',
  }
  return `${prefixes[event]}: ${message}`
}

/** Formats the lines below the title: what helps, since when, and at which server. */
export function alertLines({ event, remedy, since }: AlertNotice, server: string): string[] {
  return [
    ...(event === 'resolved' || remedy === '' ? [] : [remedy]),
    ...(event === 'test' ? [] : [`Since ${new Date(since).toISOString()}`]),
    `Server ${server}`,
  ]
}
