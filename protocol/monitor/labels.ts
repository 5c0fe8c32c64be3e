/** The order of labels in the REC of a series [MON 9 Patterns]. */
import { labelNames } from './constants.ts'

const places: ReadonlyMap<string, number> = new Map(labelNames.map((name, place) => [name, place]))

/** Whether a label has a place of its own. */
export function isKnownLabel(name: string): boolean {
  return places.has(name)
}

/** Labels with a place of their own come first, in that order; others follow in the order of their bytes in UTF-8. */
export function compareLabels(one: string, other: string): number {
  const [place, placeOfOther] = [places.get(one), places.get(other)]
  if (place === undefined && placeOfOther === undefined) return compareBytes(one, other)
  return (place ?? places.size) - (placeOfOther ?? places.size)
}

/** Units of UTF-16 have the order of UTF-8, but for surrogates: these stand for the highest code points. */
function compareBytes(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const [unit, unitOfOther] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (unit === unitOfOther) continue
    const [isHigh, isOtherHigh] = [isSurrogate(unit), isSurrogate(unitOfOther)]
    return isHigh === isOtherHigh ? unit - unitOfOther : isHigh ? 1 : -1
  }
  return one.length - other.length
}

function isSurrogate(unit: number): boolean {
  return (unit & 0xf800) === 0xd800
}
