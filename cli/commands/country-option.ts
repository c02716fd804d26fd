/** The option for numbers that are written without their country code. */
export const countryFlags = '--country <code>'
export const countryHelp = 'country of a number without country code, like GB'
export type CountryOption = { country?: string }
