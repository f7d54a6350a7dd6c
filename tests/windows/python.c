/* python.exe, or with -DGUI pythonw.exe: hands its command line to Python's own library. */
#include <windows.h>
#include <shellapi.h>

typedef int (*main_function)(int, wchar_t **);

static int run(int count, wchar_t **words)
{
    HMODULE library = LoadLibraryW(L"python311.dll");
    main_function begin;

    if (!library)
        return 103;
    begin = (main_function)(void *)GetProcAddress(library, "Py_Main");
    return begin ? begin(count, words) : 104;
}

#ifdef GUI
int WINAPI wWinMain(HINSTANCE here, HINSTANCE before, LPWSTR line, int show)
{
    int count;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);

    return run(count, words);
}
#else
int wmain(int count, wchar_t **words)
{
    return run(count, words);
}
#endif
