// A part is used by views, and knows none.
import '../app.ts'
import '../views/other.ts'

export const knowing = 1
