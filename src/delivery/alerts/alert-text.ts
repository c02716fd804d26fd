import type { AlertEvent, AlertNotice } from '../../domain/model/alert.ts'

const eventNames = {
  firing: '',
  reminder: 'Still: ',
  resolved: 'Resolved: ',
  test: 'Test: ',
} as const satisfies Record<AlertEvent, string>

/** Formats the title of a notice: `Critical: disk space: 90 MB free`. */
export function alertTitle({ event, severity, message }: AlertNotice): string {
  const severityName = severity === 'critical' ? 'Critical' : 'Warning'
  const prefix = event === 'firing' || event === 'reminder' ? `${severityName}: ` : ''
  return `${eventNames[event]}${prefix}${message}`
}

/** Formats the lines below the title: what helps, since when, and at which server. */
export function alertLines({ event, remedy, since }: AlertNotice, server: string): string[] {
  return [
    ...(event === 'resolved' || remedy === '' ? [] : [remedy]),
    ...(event === 'test' ? [] : [`Since ${new Date(since).toISOString()}`]),
    `Server ${server}`,
  ]
}
