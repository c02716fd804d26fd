/** Façades: APIs of other services that this server answers too. */
export const facades = ['twilio-verify', 'camara'] as const
export type Facade = (typeof facades)[number]
