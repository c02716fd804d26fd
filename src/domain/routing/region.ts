import { getCountryCallingCode, isSupportedCountry } from 'libphonenumber-js/max/es6'

const regions = new Map<string, string>()

/**
 * Region of a country: the world numbering zone of ITU-T E.164, which is the first digit of its calling code. Europe has
 * two, 3 and 4, which count as one. Carriers' prices and routes differ by these regions. Empty if the country is unknown.
 */
export function regionOf(country: string | null): string {
  if (country === null) return ''
  let region = regions.get(country)
  if (region === undefined) {
    const zone = isSupportedCountry(country) ? getCountryCallingCode(country).charAt(0) : ''
    region = zone === '4' ? '3' : zone
    regions.set(country, region)
  }
  return region
}
