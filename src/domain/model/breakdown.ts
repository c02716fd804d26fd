/** Dimensions of the counts. */
export const breakdownDimensions = ['application', 'country', 'channel', 'provider'] as const
export type BreakdownDimension = (typeof breakdownDimensions)[number]
