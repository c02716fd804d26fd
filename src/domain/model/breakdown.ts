/** What counts are broken down by. */
export const breakdownDimensions = ['application', 'country', 'channel', 'provider'] as const
export type BreakdownDimension = (typeof breakdownDimensions)[number]
