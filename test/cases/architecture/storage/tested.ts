// Sources do not import tests.
import { support } from '../test/support.ts'

export const tested = support
