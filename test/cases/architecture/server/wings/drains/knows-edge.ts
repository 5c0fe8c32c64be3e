// An exception allows what it names, and nothing else.
import { known } from '../../edge/knows-gmetric.ts'

export const more = [...known]
