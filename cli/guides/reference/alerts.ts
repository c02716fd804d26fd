import { alertDestinationKinds } from '../../../src/delivery/alerts/all-alert-kinds.ts'

/** Builds the table of the kinds of destinations for alerts, with their settings. */
export function alertTable(): string {
  const rows = alertDestinationKinds.flatMap(({ kind, fields }) =>
    Object.entries(fields).map(([name, { description, required, secret, default: standard }]) => {
      const facts = [
        ...(required ? ['required'] : []),
        ...(secret ? [`secret: \`${name}File\` or \`${name}Env\``] : []),
        ...(standard === undefined ? [] : [`default: \`${standard}\``]),
      ]
      return `| \`${kind}\` | \`${name}\` | ${description}${facts.length > 0 ? `; ${facts.join('; ')}` : ''} |`
    }),
  )
  return ['| kind | setting | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}
