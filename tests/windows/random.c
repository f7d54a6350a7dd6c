/* bcryptprimitives.dll, which Wine 8 does not have and libraries written in Rust want. */
#include <windows.h>

BOOLEAN WINAPI SystemFunction036(PVOID where, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE where, SIZE_T size)
{
    return SystemFunction036(where, (ULONG)size);
}
