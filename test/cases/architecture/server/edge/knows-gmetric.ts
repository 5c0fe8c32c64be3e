// Connections know no wing.
import { sensors } from '../wings/gmetric/knows-smon.ts'

export const known = [...sensors]
